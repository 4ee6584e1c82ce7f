/** An image of the service, loaded with the API key when it comes near the view. */

import { useEffect, useRef, useState } from "preact/hooks";

import { hasImageSource, imageUrl } from "../service";

interface Props {
  path: string | null;
  alt: string;
  /** What is shown in place of an image that there is not. */
  missing?: string;
  onLoad?: (image: HTMLImageElement) => void;
}

export function ServiceImage({ path, alt, missing: words = "No screenshot", onLoad }: Props) {
  const box = useRef<HTMLDivElement>(null);
  // Those of a report are in memory, and have to be there when it is printed.
  const [near, setNear] = useState(hasImageSource);
  const [shown, setShown] = useState<{ path: string; url: string | null } | null>(null);
  useEffect(() => {
    const observer = new IntersectionObserver(
      (entries) => {
        if (entries.some((entry) => entry.isIntersecting)) setNear(true);
      },
      { rootMargin: "200px" },
    );
    observer.observe(box.current!);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    if (!near || !path) return;
    let wanted = true;
    imageUrl(path).then(
      (url) => wanted && setShown({ path, url }),
      () => wanted && setShown({ path, url: null }),
    );
    return () => void (wanted = false);
  }, [near, path]);
  const current = shown?.path === path ? shown : null;
  const missing = !path || (current !== null && current.url === null);
  return (
    <div class={`image ${missing ? "image-missing" : current ? "" : "image-loading"}`} ref={box}>
      {missing ? (
        <span>{words}</span>
      ) : (
        current && (
          <img
            src={current.url!}
            alt={alt}
            onLoad={(event) => onLoad?.(event.currentTarget)}
            onError={() => setShown({ path: path!, url: null })}
          />
        )
      )}
    </div>
  );
}
