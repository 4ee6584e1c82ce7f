// Records WebSockets as activity: a page that gets its content over one shows it after the answer to what it sent. What
// intervals and chains of timers send keeps a connection alive, or polls, and is not awaited.

const ANSWER_MS = 400; // a message without an answer for longer needs none, and a server that has not greeted does not
const NativeWebSocket = window.WebSocket;
if (NativeWebSocket) {
  /** Messages of a socket that wait for an answer, oldest first. @type {WeakMap<WebSocket, object[]>} */
  const waiting = new WeakMap();
  /** Sockets whose server leaves messages without answers. @type {WeakSet<WebSocket>} */
  const silent = lasting(new WeakSet());
  /** @param {WebSocket} socket */
  const awaitMessage = (socket) => {
    const tokens = waiting.get(socket);
    if (!tokens || silent.has(socket) || activity.isInterval || activity.nesting > MAX_TIMER_NESTING) return;
    const token = {};
    tokens.push(token);
    beginRequest(token);
    nativeSetTimeout(() => {
      if (!tokens.includes(token)) return;
      silent.add(socket);
      endAll(tokens);
    }, ANSWER_MS);
  };
  /** @param {object[]} tokens */
  const endAll = (tokens) => {
    for (const token of tokens.splice(0)) endRequest(token);
  };
  window.WebSocket = class WebSocket extends NativeWebSocket {
    /** @param {string | URL} url @param {string | string[]} [protocols] */
    constructor(url, protocols) {
      super(url, protocols ?? []);
      /** @type {object[]} */
      const tokens = [];
      waiting.set(this, tokens);
      beginRequest(this);
      this.addEventListener("open", () => {
        endRequest(this);
        awaitMessage(this);
      });
      this.addEventListener("message", () => {
        silent.delete(this);
        const token = tokens.shift();
        if (token) endRequest(token);
      });
      for (const type of ["error", "close"]) {
        this.addEventListener(type, () => {
          endRequest(this);
          endAll(tokens);
        });
      }
    }
  };
  const nativeSocketSend = NativeWebSocket.prototype.send;
  NativeWebSocket.prototype.send = /** @param {any} data */ function (data) {
    awaitMessage(this);
    apply(nativeSocketSend, this, [data]);
  };
}
