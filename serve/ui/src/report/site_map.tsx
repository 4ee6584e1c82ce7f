/** The map of a report: drawn by the map of the page, with the selected state below it. */

import { useMemo, useState } from "preact/hooks";

import { drawnEdges, drawsAllEdges } from "../map/edges";
import { layOut } from "../map/layout";
import { MapCanvas } from "../map/map_canvas";
import { edgesAt, type MapModel, titleOf } from "../map/model";
import type { Scene } from "../map/renderer";
import { ServiceImage } from "../parts/service_image";
import { thumbnailPath } from "../service";
import { count, isWebUrl, line, number, shortUrl } from "../words";

interface Props {
  model: MapModel;
  site: string;
  /** -1: none. */
  selected: number;
  onSelect: (state: number) => void;
}

const NOTHING: readonly number[] = [];

export function SiteMap({ model, site, selected, onSelect }: Props) {
  const [expanded, setExpanded] = useState<ReadonlySet<number>>(new Set());
  const needed = selected < 0 ? -1 : model.answer.states.group[selected]!;
  const layout = useMemo(
    () => layOut(model, { keep: () => true, collapsed: (group) => group !== needed && !expanded.has(group) }),
    [model, expanded, needed],
  );
  const edges = useMemo(
    () => drawnEdges(model, layout, { all: drawsAllEdges(model), inherited: false, hiddenKinds: new Set() }),
    [model, layout],
  );
  const scene: Scene = useMemo(
    () => ({ model, layout, edges, selected, matches: null, path: NOTHING, pointed: -1 }),
    [model, layout, edges, selected],
  );
  return (
    <>
      <div class="report-map">
        <MapCanvas
          site={site}
          scene={scene}
          fitTo={NOTHING}
          onSelect={onSelect}
          onExpand={(group) => setExpanded(new Set([...expanded, group]))}
          scrollsPage
        />
      </div>
      {selected >= 0 && <Selected model={model} site={site} state={selected} onSelect={onSelect} />}
    </>
  );
}

function Selected({ model, site, state, onSelect }: { model: MapModel; site: string; state: number; onSelect: Props["onSelect"] }) {
  const { id, url, depth, screenshot, skipped, addressable } = model.answer.states;
  const shot = screenshot[state]!;
  const targets = new Set([...edgesAt(model.outgoing, state)].map((edge) => model.target[edge]!));
  const sources = new Set([...edgesAt(model.incoming, state)].map((edge) => model.source[edge]!));
  return (
    <div class="state-card" role="region" aria-label="State">
      <ServiceImage path={shot ? thumbnailPath(site, id[state]!, shot) : null} alt="" missing="No screenshot in this file" />
      <div>
        <h3 dir="auto">{line(titleOf(model, state), 160)}</h3>
        <p class="url">
          {isWebUrl(url[state]!) ? (
            <a href={url[state]!} target="_blank" rel="noopener noreferrer">
              {shortUrl(url[state]!, site)}
            </a>
          ) : (
            line(url[state]!)
          )}
        </p>
        <p class="muted">
          {depth[state] === 0 ? "The start page" : `${count(depth[state]!, "action")} from the start page`}
          {addressable[state] ? "" : " · reached by actions only"}
          {" · "}leads to {number(targets.size)}, reached from {number(sources.size)}
          {skipped[state]! > 0 && ` · ${count(skipped[state]!, "element")} skipped`}
        </p>
        <p class="id">
          <code>{id[state]}</code>
        </p>
        <button type="button" onClick={() => onSelect(-1)}>
          Close
        </button>
      </div>
    </div>
  );
}
