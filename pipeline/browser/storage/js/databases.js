// Provides functions that read, write and compare the databases (IndexedDB) of the document's origin. The file is one
// expression, and adds no name to the document. Records have the form of Playwright's storage states, with more types.
(() => {
  const BUFFER_VIEWS = {
    i8: Int8Array, ui8: Uint8Array, ui8c: Uint8ClampedArray, i16: Int16Array, ui16: Uint16Array, i32: Int32Array,
    ui32: Uint32Array, f16: globalThis.Float16Array, f32: Float32Array, f64: Float64Array, bi64: BigInt64Array,
    bui64: BigUint64Array,
  };
  const MAX_COMPARED = 500; // records of a store that are compared one by one

  const done = (request) =>
    new Promise((resolve, reject) => {
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });

  /** A value that no text can stand for. */
  class NotKept extends Error {}

  const toBase64 = (buffer, start = 0, length = buffer.byteLength) => {
    const bytes = new Uint8Array(buffer, start, length);
    let text = "";
    for (let i = 0; i < bytes.length; i += 8192) text += String.fromCharCode(...bytes.subarray(i, i + 8192));
    return btoa(text);
  };
  const toBuffer = (text) => Uint8Array.from(atob(text), (char) => char.charCodeAt(0)).buffer;

  const encodeKey = async (key) => {
    if (!key.extractable) throw new NotKept("a CryptoKey that must not be exported");
    const { type, usages, algorithm } = key;
    const { name, namedCurve, hash } = algorithm;
    return { jwk: await crypto.subtle.exportKey("jwk", key), type, usages, algorithm: { name, namedCurve, hash: hash?.name } };
  };
  const encodeBlob = async (blob) => {
    const { type, name, lastModified } = blob;
    return { b: toBase64(await blob.arrayBuffer()), t: type, n: name, lm: lastModified };
  };

  /**
   * Return a value that was stored, as JSON. `seen` holds the objects that contain it, and those before it. With
   * `describe`, what cannot be written is described, which suffices to notice another value.
   */
  const encode = async (value, { seen = new Map(), describe = false } = {}) => {
    const inner = (part) => encode(part, { seen, describe });
    if (value === null || value === undefined) return { v: String(value) };
    if (typeof value === "bigint") return { bi: String(value) };
    if (typeof value === "number") {
      if (Object.is(value, -0)) return { v: "-0" };
      return Number.isFinite(value) ? value : { v: String(value) };
    }
    if (typeof value !== "object") return value;
    if (seen.has(value)) return { ref: seen.get(value) };
    const kind = Object.prototype.toString.call(value).slice("[object ".length, -1); // no stored object has a tag of its own
    if (kind === "Date") return { d: Number.isNaN(value.getTime()) ? null : value.toISOString() };
    if (kind === "RegExp") return { r: { p: value.source, f: value.flags } };
    if (kind === "Error") return { e: { n: value.name, m: value.message, s: value.stack ?? "" } };
    if (kind === "ArrayBuffer") return { ab: { b: toBase64(value) } };
    if (ArrayBuffer.isView(value)) {
      const b = toBase64(value.buffer, value.byteOffset, value.byteLength);
      const entry = Object.entries(BUFFER_VIEWS).find(([, type]) => type?.name === kind);
      return entry ? { ta: { b, k: entry[0] } } : { dv: { b } };
    }
    if (["Boolean", "Number", "String", "BigInt"].includes(kind)) return { box: await inner(value.valueOf()) };
    if (describe && !["Map", "Set", "Array", "Object"].includes(kind)) {
      const { size, type, algorithm } = value;
      return { kind, size, type, algorithm: algorithm?.name };
    }
    if (kind === "Blob" || kind === "File") return { blob: await encodeBlob(value) };
    if (kind === "CryptoKey") return { key: await encodeKey(value) };
    const id = seen.size + 1;
    seen.set(value, id);
    const all = async (parts, one) => {
      const encoded = [];
      for (const part of parts) encoded.push(await one(part)); // in order: ids count
      return encoded;
    };
    const pair = async ([k, v]) => ({ k: await inner(k), v: await inner(v) });
    if (kind === "Map") return { m: await all([...value], pair), id };
    if (kind === "Set") return { s: await all([...value], inner), id };
    if (kind === "Array") return { a: await all(Array.from(value), inner), id };
    if (kind === "Object") return { o: await all(Object.entries(value), pair), id };
    throw new NotKept(`a value of the type ${kind}`);
  };

  const decodeKey = ({ jwk, usages, algorithm }) => crypto.subtle.importKey("jwk", jwk, algorithm, true, usages);
  const decodeBlob = ({ b, t, n, lm }) =>
    n === undefined ? new Blob([toBuffer(b)], { type: t }) : new File([toBuffer(b)], n, { type: t, lastModified: lm });
  const SPECIAL = { undefined: undefined, null: null, NaN: NaN, Infinity: Infinity, "-Infinity": -Infinity, "-0": -0 };

  /** Return the value that `encode` or Playwright wrote. */
  const decode = async (json, refs = new Map()) => {
    const inner = (part) => decode(part, refs);
    if (typeof json !== "object" || json === null) return json;
    const made = (value) => (refs.set(json.id, value), value);
    if ("ref" in json) return refs.get(json.ref);
    if ("v" in json) return SPECIAL[json.v];
    if ("bi" in json) return BigInt(json.bi);
    if ("d" in json) return new Date(json.d ?? NaN);
    if ("r" in json) return new RegExp(json.r.p, json.r.f);
    if ("ab" in json) return toBuffer(json.ab.b);
    if ("ta" in json) return new BUFFER_VIEWS[json.ta.k](toBuffer(json.ta.b));
    if ("dv" in json) return new DataView(toBuffer(json.dv.b));
    if ("box" in json) return Object(await inner(json.box));
    if ("blob" in json) return decodeBlob(json.blob);
    if ("key" in json) return decodeKey(json.key);
    if ("e" in json) {
      const error = new Error(json.e.m);
      return Object.assign(error, { name: json.e.n, stack: json.e.s });
    }
    if ("a" in json) {
      const list = made([]);
      for (const part of json.a) list.push(await inner(part));
      return list;
    }
    if ("m" in json) {
      const map = made(new Map());
      for (const { k, v } of json.m) map.set(await inner(k), await inner(v));
      return map;
    }
    if ("s" in json) {
      const set = made(new Set());
      for (const part of json.s) set.add(await inner(part));
      return set;
    }
    if ("o" in json) {
      const object = made({});
      const about = { writable: true, enumerable: true, configurable: true }; // also of the name "__proto__"
      for (const { k, v } of json.o) Object.defineProperty(object, k, { ...about, value: await inner(v) });
      return object;
    }
    throw new TypeError(`unknown value with ${Object.keys(json)}`);
  };

  /** Open a database that exists; undefined if it was deleted meanwhile. */
  const openExisting = async (name) => {
    const request = indexedDB.open(name);
    request.onupgradeneeded = () => request.transaction.abort(); // it would be created
    try {
      const database = await done(request);
      database.onversionchange = () => database.close(); // the site may delete or upgrade it
      return database;
    } catch (error) {
      if (error.name !== "AbortError") throw error;
      return undefined;
    }
  };
  const paths = (keyPath) => (Array.isArray(keyPath) ? { keyPathArray: keyPath } : { keyPath: keyPath ?? undefined });
  const recordsOf = (store, limit) =>
    Promise.all([done(store.getAllKeys(null, limit)), done(store.getAll(null, limit)), done(store.count())]);

  /** Return the key that a store would give the next record: an insertion that is taken back tells. */
  const nextKey = async (database, name) => {
    const transaction = database.transaction(name, "readwrite");
    const key = await done(transaction.objectStore(name).add({})).catch(() => undefined);
    transaction.abort();
    return key;
  };

  const readStore = async (database, store, [keys, values], about, lost) => {
    const { name, autoIncrement, keyPath } = about;
    const records = [];
    for (const [i, key] of keys.entries()) {
      try {
        const valueEncoded = await encode(values[i]);
        records.push(keyPath === null ? { keyEncoded: await encode(key), valueEncoded } : { valueEncoded });
      } catch (error) {
        if (!(error instanceof NotKept)) throw error;
        lost.push(`${database.name} / ${name}: ${error.message}`);
      }
    }
    const next = autoIncrement ? await nextKey(database, name) : undefined;
    return { name, autoIncrement, ...paths(keyPath), indexes: about.indexes, records, nextKey: next };
  };

  /** Return all databases, and what could not be written. */
  const read = async () => {
    const databases = [];
    const lost = [];
    for (const { name, version } of await indexedDB.databases()) {
      const database = await openExisting(name);
      if (!database) continue;
      const names = [...database.objectStoreNames];
      const stores = [];
      if (names.length) {
        const transaction = database.transaction(names);
        const found = names.map((each) => transaction.objectStore(each));
        const about = found.map(({ name, autoIncrement, keyPath, indexNames }, i) => ({
          name,
          autoIncrement,
          keyPath,
          indexes: [...indexNames].map((each) => {
            const { name, keyPath, unique, multiEntry } = found[i].index(each);
            return { name, ...paths(keyPath), unique, multiEntry };
          }),
        }));
        const records = await Promise.all(found.map((store) => recordsOf(store)));
        for (const [i, store] of found.entries()) stores.push(await readStore(database, store, records[i], about[i], lost));
      }
      database.close();
      databases.push({ name, version, stores });
    }
    return { databases, lost };
  };

  const create = async ({ name, version, stores }) => {
    const request = indexedDB.open(name, version);
    request.onupgradeneeded = () => {
      for (const { name, autoIncrement, keyPath, keyPathArray, indexes } of stores) {
        const store = request.result.createObjectStore(name, { autoIncrement, keyPath: keyPathArray ?? keyPath });
        for (const { name, keyPath, keyPathArray, unique, multiEntry } of indexes)
          store.createIndex(name, keyPathArray ?? keyPath, { unique, multiEntry });
      }
    };
    return done(request);
  };

  /** Let a store go on with a number: it counts from the largest number that was a key. */
  const countFrom = async (store, { nextKey, keyPath }) => {
    const last = nextKey - 1;
    if (!(last >= 1) || (await done(store.count(last)))) return;
    if (keyPath === undefined) {
      await done(store.add({}, last));
    } else {
      const record = {};
      const names = keyPath.split(".");
      const parent = names.slice(0, -1).reduce((object, each) => (object[each] = {}), record);
      parent[names.at(-1)] = last;
      await done(store.add(record));
    }
    await done(store.delete(last));
  };

  /** Create databases. Return where that failed and why, if it did. */
  const write = async (databases) => {
    let at = [];
    try {
      for (const [d, each] of databases.entries()) {
        at = [d];
        const database = await create(each);
        for (const [s, about] of each.stores.entries()) {
          const records = [];
          for (const [r, record] of about.records.entries()) {
            at = [d, "stores", s, "records", r];
            const key = "key" in record ? record.key : await decode(record.keyEncoded);
            records.push([key, "value" in record ? record.value : await decode(record.valueEncoded)]);
          }
          const store = database.transaction(about.name, "readwrite").objectStore(about.name);
          for (const [r, [key, value]] of records.entries()) {
            at = [d, "stores", s, "records", r];
            await done(store.add(value, key));
          }
          at = [d, "stores", s];
          if (about.autoIncrement) await countFrom(store, about);
        }
        database.close();
      }
    } catch (error) {
      return { at, problem: `${error.name}: ${error.message}` };
    }
    return null;
  };

  /** Hash of a text. cyrb53 by bryc, public domain. */
  const hashText = (text) => {
    let [h1, h2] = [0xdeadbeef, 0x41c6ce57];
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i);
      h1 = Math.imul(h1 ^ code, 2654435761);
      h2 = Math.imul(h2 ^ code, 1597334677);
    }
    h1 = Math.imul(h1 ^ (h1 >>> 16), 2246822507) ^ Math.imul(h2 ^ (h2 >>> 13), 3266489909);
    h2 = Math.imul(h2 ^ (h2 >>> 16), 2246822507) ^ Math.imul(h1 ^ (h1 >>> 13), 3266489909);
    return (4294967296 * (2097151 & h2) + (h1 >>> 0)).toString(36);
  };

  /** Return hashes of the records, as lists of database, store, key and hash; the store and the key may be missing. */
  const hashes = async () => {
    const found = [];
    for (const { name, version } of await indexedDB.databases()) {
      found.push([name, "", "", `version ${version}`]);
      const database = await openExisting(name);
      if (!database) continue;
      const names = [...database.objectStoreNames];
      if (names.length) {
        const transaction = database.transaction(names);
        const stores = await Promise.all(names.map((each) => recordsOf(transaction.objectStore(each), MAX_COMPARED)));
        for (const [i, [keys, values, count]] of stores.entries()) {
          if (count > MAX_COMPARED) found.push([name, names[i], "", `${count} records`]);
          for (const [r, key] of keys.entries()) {
            const [of, value] = [await encode(key), await encode(values[r], { describe: true })];
            found.push([name, names[i], JSON.stringify(of), hashText(JSON.stringify(value))]);
          }
        }
      }
      database.close();
    }
    return found;
  };

  return { read, write, hashes };
})()
