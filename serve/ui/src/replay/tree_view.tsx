/** The tree of a search: visited states with windows and values, the order of visits, returns, and what was not done. */

import { useEffect, useMemo, useRef } from "preact/hooks";

import { Table } from "../parts/table";
import { count, isWebUrl, line, number } from "../words";
import type { SearchTree, TreeAction, TreeNode, TreeReturn } from "./file";
import { CARD, layOutTree, type TreeLayout } from "./tree_layout";

/** Most returns that are drawn; the table of steps has all. */
const MAX_RETURNS = 80;

interface Props {
  tree: SearchTree;
  /** The selected state; -1: none. */
  selected: number;
  onSelect: (state: number) => void;
}

export function TreeView({ tree, selected, onSelect }: Props) {
  const layout = useMemo(() => layOutTree(tree.nodes), [tree]);
  const node = tree.nodes[selected];
  return (
    <>
      <p class="muted">
        {tree.counts
          .filter(([, value]) => value > 0)
          .map(([name, value]) => `${line(name, 60)}: ${number(value)}`)
          .join(" · ")}
      </p>
      {tree.nodes.length > 0 && <Picture tree={tree} layout={layout} selected={selected} onSelect={onSelect} />}
      {tree.nodesLeftOut > 0 && <p class="notice">Not in the file: {count(tree.nodesLeftOut, "later state")}.</p>}
      {node && <State tree={tree} at={selected} node={node} onSelect={onSelect} />}
      <Steps tree={tree} onSelect={onSelect} />
      {tree.known.length > 0 && (
        <section class="tree-part" aria-label="Known and not visited">
          <h3>Known and not visited</h3>
          <p class="muted">
            Judged by what the map says of them: {count(tree.knownTotal, "state")}
            {tree.knownTotal > tree.known.length && `; the best ${number(tree.known.length)} are listed`}.
          </p>
          <Table
            label="Known and not visited"
            rows={tree.known}
            columns={[
              { title: "Value", isNumber: true, cell: (each) => each.value.toFixed(3) },
              { title: "Title", cell: (each) => line(each.title, 160) },
              { title: "URL", cell: (each) => line(each.url) },
              { title: "Seen from", isNumber: true, cell: (each) => <Go tree={tree} to={each.seenFrom} onSelect={onSelect} /> },
            ]}
          />
        </section>
      )}
    </>
  );
}

interface PictureProps extends Props {
  layout: TreeLayout;
}

function Picture({ tree, layout, selected, onSelect }: PictureProps) {
  const { nodes } = tree;
  const pane = useRef<HTMLDivElement>(null);
  useEffect(() => {
    pane.current!.querySelector('[aria-pressed="true"]')?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [selected]);
  const move = (event: KeyboardEvent) => {
    const next = neighbour(event.key, selected, nodes, layout);
    if (next === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation(); // of the steps
    onSelect(next);
    pane.current!.querySelectorAll<HTMLElement>(".tree-node")[next]!.focus({ preventScroll: true });
  };
  return (
    <div class="tree" ref={pane} role="group" aria-label="Search tree" onKeyDown={move}>
      <div class="tree-area" style={{ width: `${layout.width}px`, height: `${layout.height}px` }}>
        <svg width={layout.width} height={layout.height} aria-hidden="true">
          {nodes.map(({ parent }, at) => parent !== null && <path key={at} class="tree-edge" d={edgePath(layout, parent, at)} />)}
        </svg>
        {nodes.map((node, at) => (
          <button
            key={at}
            type="button"
            class={`tree-node${node.isAnswer ? " is-answer" : ""}${node.problem ? " is-bad" : ""}`}
            style={{ left: `${layout.left[at]}px`, top: `${layout.top[at]}px`, width: `${CARD.width}px`, height: `${CARD.height}px` }}
            aria-pressed={at === selected}
            tabIndex={at === Math.max(0, selected) ? 0 : -1}
            title={line(node.title || node.url, 160)}
            onClick={() => onSelect(at === selected ? -1 : at)}
          >
            <span class="image">{node.image ? <img src={node.image} alt="" loading="lazy" /> : <span>No screenshot</span>}</span>
            <span class="tree-name" dir="auto">
              {at}. {line(node.title || node.url, 60) || "No title"}
            </span>
            <span class="tree-value">
              {node.value === null ? (
                <span class="muted">{node.sameAs === null ? "not judged" : `same as ${node.sameAs}`}</span>
              ) : (
                <>
                  <meter min={0} max={1} value={node.value} />
                  {node.value.toFixed(3)}
                </>
              )}
            </span>
            {node.step > 0 && <span class="tree-step">{node.step}</span>}
            {node.isAnswer && <span class="tree-answer">answer</span>}
          </button>
        ))}
        <svg class="tree-returns" width={layout.width} height={layout.height} aria-hidden="true">
          {returnsOf(tree).map(({ from, to, arrived }, at) => (
            <path key={at} class={arrived ? "tree-return" : "tree-return failed"} d={returnPath(layout, from, to)} />
          ))}
        </svg>
      </div>
    </div>
  );
}

/** The state that an arrow key leads to: the parent, the first one below, or the next one of those at the same depth. */
function neighbour(key: string, selected: number, nodes: readonly TreeNode[], layout: TreeLayout): number | undefined {
  if (!["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"].includes(key)) return undefined;
  if (selected < 0) return 0;
  if (key === "ArrowLeft") return nodes[selected]!.parent ?? selected;
  if (key === "ArrowRight") return layout.children[selected]![0] ?? selected;
  const column = nodes.flatMap((_, at) => (layout.left[at] === layout.left[selected] ? [at] : []));
  column.sort((a, b) => layout.top[a]! - layout.top[b]!);
  return column[column.indexOf(selected) + (key === "ArrowUp" ? -1 : 1)] ?? selected;
}

function edgePath({ left, top }: TreeLayout, from: number, to: number): string {
  const [x1, y1, x2, y2] = [left[from]! + CARD.width, top[from]! + CARD.height / 2, left[to]!, top[to]! + CARD.height / 2];
  const middle = (x1 + x2) / 2;
  return `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`;
}

/** From the lower edge of the state that was shown to that of the state that was returned to. */
function returnPath({ left, top }: TreeLayout, from: number, to: number): string {
  const [x1, y1] = [left[from]! + CARD.width / 2, top[from]! + CARD.height];
  const [x2, y2] = [left[to]! + CARD.width / 2, top[to]! + CARD.height];
  const low = Math.max(y1, y2) + 14;
  return `M${x1} ${y1}C${x1} ${low} ${x2} ${low} ${x2} ${y2}`;
}

/** Returns with the state that was shown before each. */
function returnsOf({ nodes, steps }: SearchTree): { from: number; to: number; arrived: boolean }[] {
  const found: { from: number; to: number; arrived: boolean }[] = [];
  let shown = 0;
  for (const { returns, node, result } of steps) {
    for (const { target, arrived } of returns) {
      if (target !== shown && nodes[target] && nodes[shown] && found.length < MAX_RETURNS) found.push({ from: shown, to: target, arrived });
      if (arrived) shown = target;
    }
    shown = result ?? node ?? shown;
  }
  return found;
}

function State({ tree, at, node, onSelect }: { tree: SearchTree; at: number; node: TreeNode; onSelect: Props["onSelect"] }) {
  const by = node.parent === null ? undefined : tree.nodes[node.parent]!.actions.find(({ result }) => result === at);
  const facts = [
    node.step > 0 ? `visited in step ${node.step}` : "",
    node.value === null ? "" : `value ${node.value.toFixed(3)}`,
    node.mapState ? `state ${node.mapState.slice(0, 8)} of the map` : "not recognised on the map",
    node.sameAs === null ? "" : `merged: shows the same elements and texts as state ${node.sameAs}`,
    node.isAnswer ? "the answer was chosen here" : "",
    ...node.notes,
  ];
  return (
    <section class="tree-part" aria-label={`State ${at}`}>
      <h3 dir="auto">
        {at}. {line(node.title, 200) || "No title"}
      </h3>
      <p class="url">
        {isWebUrl(node.url) ? (
          <a href={node.url} target="_blank" rel="noopener noreferrer">
            {line(node.url)}
          </a>
        ) : (
          line(node.url)
        )}
      </p>
      <p class="muted">{facts.filter(Boolean).map((each) => line(each, 160)).join(" · ")}</p>
      {node.problem && <p class="notice notice-bad">{line(node.problem)}</p>}
      {by && (
        <p>
          Reached from <Go tree={tree} to={node.parent!} onSelect={onSelect} /> by <code>{line(by.text)}</code>
        </p>
      )}
      {node.actions.length > 0 ? (
        <Actions tree={tree} node={node} onSelect={onSelect} />
      ) : (
        <p class="muted">Nothing was proposed here.</p>
      )}
    </section>
  );
}

function Actions({ tree, node, onSelect }: { tree: SearchTree; node: TreeNode; onSelect: Props["onSelect"] }) {
  return (
    <>
      <Table
        label="Proposed actions"
        rows={node.actions}
        columns={[
          { title: "Score", isNumber: true, cell: (each) => each.score.toFixed(3) },
          {
            title: "Action",
            cell: (each: TreeAction) => (
              <>
                <span class={each.result === null ? "" : "done"}>{line(each.text)}</span>{" "}
                {each.changesData && <span class="tag tag-pending">changes data</span>}{" "}
                {each.isKnown && <span class="tag">known to the map</span>}
              </>
            ),
          },
          {
            title: "Status",
            cell: (each) => (
              <>
                {line(each.status, 40)}
                {each.result !== null && (
                  <>
                    , led to <Go tree={tree} to={each.result} onSelect={onSelect} />
                  </>
                )}
              </>
            ),
          },
          { title: "Why", cell: (each) => line(each.reason) },
          { title: "Proposed by", cell: (each) => line(each.proposedBy.join(", ")) },
          { title: "Merged", cell: (each) => each.merged.map((merged, at) => <div key={at}>{line(merged)}</div>) },
        ]}
      />
      {node.actionsLeftOut > 0 && <p class="muted">Not in the file: {count(node.actionsLeftOut, "action")} that promised less.</p>}
    </>
  );
}

function Steps({ tree, onSelect }: { tree: SearchTree; onSelect: Props["onSelect"] }) {
  if (!tree.steps.length) return <p class="muted">No step was taken.</p>;
  return (
    <section class="tree-part" aria-label="Order of the steps">
      <h3>Order of the steps</h3>
      <Table
        label="Order of the steps"
        rows={tree.steps.map((step, at) => ({ step, at }))}
        columns={[
          { title: "Step", isNumber: true, cell: ({ step, at }) => (step.action ? number(at + 1) : "end") },
          { title: "Returned before", cell: ({ step }) => step.returns.map((each, at) => <Return key={at} made={each} tree={tree} onSelect={onSelect} />) },
          { title: "In state", isNumber: true, cell: ({ step }) => <Go tree={tree} to={step.node} onSelect={onSelect} /> },
          { title: "Action", cell: ({ step }) => line(step.action) },
          { title: "Status", cell: ({ step }) => line(step.status, 40) },
          { title: "Led to", isNumber: true, cell: ({ step }) => <Go tree={tree} to={step.result} onSelect={onSelect} /> },
          { title: "Score", isNumber: true, cell: ({ step }) => (step.score === null ? "" : step.score.toFixed(3)) },
          { title: "Rule", cell: ({ step }) => line(step.rule, 120) },
          { title: "Changed data by", cell: ({ step }) => line(step.changed.join(", ")) },
        ]}
      />
    </section>
  );
}

function Return({ made, tree, onSelect }: { made: TreeReturn; tree: SearchTree; onSelect: Props["onSelect"] }) {
  const over = made.tried.map((each) => line(each, 60)).join(", then ") || "nothing";
  return (
    <div class={made.arrived ? "" : "bad"}>
      to <Go tree={tree} to={made.target} onSelect={onSelect} /> over {over}
      {!made.arrived && `: failed, ${line(made.problem)}`}
    </div>
  );
}

/** A state by its number, which selects it. */
function Go({ tree, to, onSelect }: { tree: SearchTree; to: number | null; onSelect: Props["onSelect"] }) {
  if (to === null) return null;
  if (!tree.nodes[to]) return <>{number(to)}</>;
  return (
    <button type="button" class="quiet" title={line(tree.nodes[to].title, 160)} onClick={() => onSelect(to)}>
      {to}
    </button>
  );
}
