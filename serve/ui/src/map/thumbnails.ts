/** Small images of states, loaded when they come into view and kept while they are used. */

import { imageUrl } from "../service";

const MAX_KEPT = 300;
const MAX_LOADING = 6;

export class Thumbnails {
  private readonly kept = new Map<string, HTMLImageElement | null>();
  private readonly wanted = new Set<string>();
  private loading = 0;

  constructor(private readonly onLoad: () => void) {}

  /** Return the image at a path if it is loaded; otherwise load it and return null. */
  get(path: string): HTMLImageElement | null {
    const image = this.kept.get(path);
    if (image === undefined) {
      this.wanted.add(path);
      this.loadNext();
      return null;
    }
    this.kept.delete(path);
    this.kept.set(path, image);
    return image;
  }

  /** Forget what was wanted and not begun: the view has moved on. */
  forgetWanted(): void {
    this.wanted.clear();
  }

  private loadNext(): void {
    for (const path of this.wanted) {
      if (this.loading >= MAX_LOADING) return;
      this.wanted.delete(path);
      if (this.kept.has(path)) continue;
      this.kept.set(path, null);
      this.loading++;
      void this.load(path).finally(() => {
        this.loading--;
        this.loadNext();
      });
    }
  }

  private async load(path: string): Promise<void> {
    try {
      const image = new Image();
      image.src = await imageUrl(path);
      await image.decode();
      this.kept.set(path, image);
      if (this.kept.size > MAX_KEPT) this.kept.delete(this.kept.keys().next().value!);
      this.onLoad();
    } catch {
      // Stays null: the state is drawn without an image.
    }
  }
}
