// Provides the structure of a page for callers without the SDK: an expression whose value is a function.
//
// Call it in the page (Playwright: `await page.evaluate(text)`; WebDriver: `return (text)()`) and send the result to
// POST /v1/sites/{site}/locate. It scrolls the page to its top, removes the focus, and waits until the page has settled.
async () => {
  /*PAGE_SCRIPT*/

  // MD5 (RFC 1321) of UTF-8 text. Thousands of places are hashed, hence words are in typed arrays.
  const SHIFTS = [7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21];
  const SINES = Int32Array.from({ length: 64 }, (_, i) => Math.floor(Math.abs(Math.sin(i + 1)) * 2 ** 32) | 0);
  const encoder = new TextEncoder();
  const md5 = (text) => {
    const bytes = encoder.encode(text);
    const words = new Int32Array((((bytes.length + 8) >> 6) + 1) * 16);
    bytes.forEach((byte, i) => {
      words[i >> 2] |= byte << ((i & 3) * 8);
    });
    words[bytes.length >> 2] |= 0x80 << ((bytes.length & 3) * 8);
    words[words.length - 2] = bytes.length * 8;
    const state = Int32Array.of(0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476);
    for (let block = 0; block < words.length; block += 16) {
      let [a, b, c, d] = state;
      for (let i = 0; i < 64; i++) {
        const round = i >> 4;
        const mixed = [(b & c) | (~b & d), (d & b) | (~d & c), b ^ c ^ d, c ^ (b | ~d)][round];
        const word = words[block + [i, 5 * i + 1, 3 * i + 5, 7 * i][round] % 16];
        const sum = (a + mixed + SINES[i] + word) | 0;
        const shift = SHIFTS[round * 4 + (i & 3)];
        [a, d, c, b] = [d, c, b, (b + ((sum << shift) | (sum >>> (32 - shift)))) | 0];
      }
      state[0] += a;
      state[1] += b;
      state[2] += c;
      state[3] += d;
    }
    return Array.from(new Uint8Array(state.buffer), (byte) => byte.toString(16).padStart(2, "0")).join("");
  };

  const snapshot = JSON.parse(await window["\0waygraph"].observe(/*OPTIONS*/));
  const prefixes = snapshot.documents.map((frame) => frame.map((step) => `${step} ||| `).join(""));
  const unexposed = new Set(snapshot.unexposed);
  const paths = [];
  const structure = new Set();
  snapshot.steps.split("\n").forEach((step, number) => {
    const parent = snapshot.parents[number];
    if (parent === undefined) return;
    paths.push((parent < 0 ? prefixes[-1 - parent] : paths[parent]) + step);
    if (!unexposed.has(number)) structure.add(md5(paths[number]));
  });
  return { url: snapshot.url, structure: [...structure].sort() };
}
