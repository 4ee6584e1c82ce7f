// Is this text the same as another one? 64 bits of FNV-1a over UTF-8, four bytes at a time, in two lanes; not for secrets.

const utf8 = new TextEncoder();
const newHash = () => {
  let a = 0x811c9dc5 | 0;
  let b = 0x1b873593 | 0;
  return {
    feed: (text) => {
      const bytes = utf8.encode(text);
      const words = new Uint32Array(bytes.buffer, 0, bytes.length >> 2);
      for (let i = 0; i < words.length; i++) {
        const word = words[i];
        a = Math.imul((a ^ word) + (a >>> 13), 0x01000193);
        b = Math.imul((b ^ word) + (b >>> 15), 0x85ebca6b);
      }
      let rest = bytes.length;
      for (let i = words.length * 4; i < bytes.length; i++) rest = (rest << 8) ^ bytes[i];
      a = Math.imul((a ^ rest) + (a >>> 13), 0x01000193);
      b = Math.imul((b ^ rest) + (b >>> 15), 0x85ebca6b);
    },
    hex: () => (a >>> 0).toString(16).padStart(8, "0") + (b >>> 0).toString(16).padStart(8, "0"),
  };
};
const hashOf = (text) => {
  const hash = newHash();
  hash.feed(text);
  return hash.hex();
};
