/** The report of the changes between two versions: the view of the page with what it needs in the file. */

import { Changes } from "../changes_view";
import { changesHref, parseRoute, useRoute } from "../route";
import { count } from "../words";
import type { ChangesContent } from "./document";

export function ChangesReport({ content }: { content: ChangesContent }) {
  const { changes, left_out: leftOut } = content;
  const route = useRoute();
  const shown = route.view === "changes" ? route : parseRoute(changesHref(changes.site));
  return (
    <>
      {leftOut > 0 && (
        <p class="banner">This file is limited in size: {count(leftOut, "screenshot")} of the last states are left out.</p>
      )}
      <Changes route={{ ...shown, site: changes.site }} answer={changes} isReport />
    </>
  );
}
