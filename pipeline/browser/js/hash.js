// Is this text the same as another one? 64 bits of FNV-1a, two lanes; not for secrets.

const MAX_HASHED = 4_000_000; // characters; longer texts are sampled evenly
const newHash = () => {
  let a = 0x811c9dc5 | 0;
  let b = 0x1b873593 | 0;
  return {
    feed: (text) => {
      const step = Math.ceil((text.length + 1) / MAX_HASHED);
      for (let i = 0; i < text.length; i += step) {
        const code = text.charCodeAt(i);
        a = Math.imul(a ^ code, 0x01000193);
        b = Math.imul(b ^ code, 0x85ebca6b) + (b >>> 15);
      }
      a = Math.imul(a ^ text.length, 0x01000193);
      b = Math.imul(b ^ text.length, 0x85ebca6b) + (b >>> 15);
    },
    hex: () => (a >>> 0).toString(16).padStart(8, "0") + (b >>> 0).toString(16).padStart(8, "0"),
  };
};
const hashOf = (text) => {
  const hash = newHash();
  hash.feed(text);
  return hash.hex();
};
