/** A report that is one file: reads its content from the document and draws it with the components of the page. */

import "../style.css";
import "./report.css";

import { render } from "preact";

import { setImageSource } from "../service";
import { dateTime, line } from "../words";
import { AgentsReport } from "./agents_report";
import { ChangesReport } from "./changes_report";
import type { ReportDocument } from "./document";
import { RepeatsReport } from "./repeats_report";
import { RunReport } from "./run_report";
import { SiteReport } from "./site_report";

const report = JSON.parse(document.getElementById("content")!.textContent!) as ReportDocument;
const images = new Map(Object.entries(report.images));
// Images of the service are addressed by a path with their content hash; a report keeps them by that hash.
setImageSource((path) => images.get(path.split("?v=").at(-1)!));
document.title = line(report.title, 200);

render(
  <>
    <header class="bar">
      <span class="brand">
        <svg viewBox="0 0 32 32" aria-hidden="true" width="22" height="22">
          <path d="M9 10l7 12 7-12" />
          <circle cx="9" cy="10" r="3.5" />
          <circle cx="23" cy="10" r="3.5" />
          <circle cx="16" cy="22" r="3.5" />
        </svg>
        <span>waygraph</span>
      </span>
      <span class="report-title">{line(report.title, 120)}</span>
      <time class="muted report-made" dateTime={report.made}>
        {dateTime(report.made)}
      </time>
    </header>
    {report.kind === "site" && <SiteReport content={report.content} />}
    {report.kind === "run" && <RunReport content={report.content} />}
    {report.kind === "changes" && <ChangesReport content={report.content} />}
    {report.kind === "agents" && <AgentsReport content={report.content} images={images} />}
    {report.kind === "repeats" && <RepeatsReport content={report.content} />}
  </>,
  document.getElementById("app")!,
);
