/** One step of a replay: expected beside actual, what happened, and why. */

import { useState } from "preact/hooks";

import { count, duration, isWebUrl, line, number } from "../words";
import type { ReplayPage, ReplayStep } from "./file";

/** Longest text of a model or a page that is shown at first, in characters. */
const SHOWN = 4_000;

interface Props {
  step: ReplayStep;
  number: number;
  of: number;
  onShow: (number: number) => void;
}

export function StepDetails({ step, number: at, of, onShow }: Props) {
  const drifted = step.agrees === false;
  const pages: [string, ReplayPage | null][] = step.expected
    ? [
        ["Expected", step.expected],
        ["Actual", step.after],
      ]
    : [
        ["Before", step.before],
        ["After", step.after],
      ];
  const read = step.before?.text ?? "";
  return (
    <section class="panel step-details" aria-label="Step">
      <div class="step-head">
        <h2 dir="auto">{line(step.action, 400) || "The model's answer was no action"}</h2>
        <div class="step-buttons">
          <button type="button" disabled={at <= 1} onClick={() => onShow(at - 1)} aria-label="Previous step">
            ←
          </button>
          <span class="muted" role="status">
            {number(at)} of {number(of)}
          </span>
          <button type="button" disabled={at >= of} onClick={() => onShow(at + 1)} aria-label="Next step">
            →
          </button>
        </div>
      </div>
      {step.message && (
        <p class={drifted ? "notice notice-bad" : "muted"} dir="auto">
          {drifted && <strong>{step.status === "failed" ? "This step could not be done. " : "Here it drifted. "}</strong>}
          {line(step.message, 1_000)}
        </p>
      )}
      <div class="pair">
        {pages.map(([caption, page]) => (
          <PageFigure key={caption} caption={caption} page={page} differs={drifted && caption === "Actual"} />
        ))}
      </div>
      <Measures step={step} />
      {step.thinking && (
        <div>
          <h3>In the model's words</h3>
          <LongText text={step.thinking} label="In the model's words" />
        </div>
      )}
      {read && (
        <details>
          <summary>What the agent read</summary>
          <LongText text={read} label="What the agent read" isCode />
        </details>
      )}
      {step.details && (
        <details>
          <summary>Recorded with the step</summary>
          <LongText text={step.details} label="Recorded with the step" isCode />
        </details>
      )}
    </section>
  );
}

export function PageFigure({ caption, page, differs }: { caption: string; page: ReplayPage | null; differs: boolean }) {
  return (
    <figure class={differs ? "figure-differs" : ""}>
      <figcaption>
        <strong>{caption}</strong>
        {page?.title && <span dir="auto"> {line(page.title, 160)}</span>}
      </figcaption>
      {page?.image ? (
        <img src={page.image} alt={`${caption}: ${line(page.title || page.url, 120)}`} />
      ) : (
        <div class="image image-missing">
          <span>{page ? "No screenshot" : "Not recorded"}</span>
        </div>
      )}
      {page?.url && (
        <p class="url">
          {isWebUrl(page.url) ? (
            <a href={page.url} target="_blank" rel="noopener noreferrer">
              {line(page.url)}
            </a>
          ) : (
            line(page.url)
          )}
        </p>
      )}
      {page?.nodeId && (
        <p class="id">
          <code>{line(page.nodeId, 64)}</code>
        </p>
      )}
    </figure>
  );
}

function Measures({ step }: { step: ReplayStep }) {
  const { usage } = step;
  const parts = [
    !step.ms ? "" : `settled after ${duration(step.ms / 1000)}`,
    usage ? line(usage.model, 80) : "",
    usage ? `${number(usage.inputTokens)} tokens in, ${number(usage.outputTokens)} out` : "",
    usage && usage.calls > 1 ? count(usage.calls, "call") : "",
    usage ? `${duration(usage.seconds)} of the model` : "",
    usage?.cost ? `$${usage.cost.toFixed(4)}` : "",
  ].filter(Boolean);
  return parts.length ? <p class="muted">{parts.join(" · ")}</p> : null;
}

function LongText({ text, label, isCode = false }: { text: string; label: string; isCode?: boolean }) {
  const [all, setAll] = useState(false);
  const shown = all ? text : text.slice(0, SHOWN);
  return (
    <>
      <pre class={isCode ? "" : "prose"} tabIndex={0} aria-label={label} dir="auto">
        {withoutControls(shown)}
      </pre>
      {shown.length < text.length && (
        <button type="button" class="quiet more" onClick={() => setAll(true)}>
          Show all {number(text.length)} characters
        </button>
      )}
    </>
  );
}

/** Line by line, since `line` removes line breaks with the other control characters. */
function withoutControls(text: string): string {
  return text
    .split("\n")
    .map((each) => line(each, each.length || 1))
    .join("\n");
}
