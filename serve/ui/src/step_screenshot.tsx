/** The screenshot of the state in which a step is done, with its element outlined. */

import { useLoaded } from "./loading";
import type { MapModel } from "./map/model";
import { Screenshot } from "./parts/screenshot";
import { getJson, sitePath } from "./service";
import type { Action, ElementsAnswer, Step } from "./types";
import { actionText } from "./words";

interface Props {
  model: MapModel;
  site: string;
  /** Id of the state in which the step is done. */
  nodeId: string;
  step: Step;
  scale: number;
}

export function StepScreenshot({ model, site, nodeId, step, scale }: Props) {
  const index = model.indexOf.get(nodeId);
  const shot = index === undefined ? "" : model.answer.states.screenshot[index]!;
  const path = `${sitePath(site)}/nodes/${nodeId}/elements`;
  const loaded = useLoaded(shot && `${path}@${model.answer.version}`, (signal) => getJson<ElementsAnswer>(path, signal));
  const box =
    loaded.status === "loaded"
      ? loaded.value.elements.find(
          (element) => element.expected_node_id === step.expected_node_id && isSame(element.action, step.action),
        )?.box
      : null;
  if (!shot || !box) return null; // nothing to point at
  return (
    <Screenshot
      path={`${sitePath(site)}/nodes/${nodeId}/screenshot?v=${shot}`}
      alt={`Where the step is done: ${actionText(step.action)}`}
      scale={scale}
      marks={[{ key: 0, box, label: actionText(step.action) }]}
      pointed={0}
      onPoint={() => undefined}
      onChoose={() => undefined}
    />
  );
}

function isSame(a: Action, b: Action): boolean {
  return a.kind === b.kind && a.role === b.role && a.name === b.name && a.nth === b.nth;
}
