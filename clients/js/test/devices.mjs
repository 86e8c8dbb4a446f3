// Every vector of clients/vectors/devices.json, on Node. It has no IndexedDB, so that one of this test keeps the budgets.
//
//     node test/devices.mjs ../vectors/devices.json

import { readFileSync } from "node:fs";
import { tryDevices } from "./device_vectors.mjs";

/** @type {Map<string, Map<string, Map<any, any>>>} databases, their stores, and what these keep */
const databases = new Map();

/** A request that is answered with a copy. */
function answered(request, result) {
  queueMicrotask(() => {
    request.result = structuredClone(result);
    request.onsuccess?.();
  });
  return request;
}

/** A transaction that ends when nothing is asked of it for a while; what is aborted is taken back. */
function transactionOf(stores) {
  const before = new Map([...stores].map(([name, kept]) => [name, new Map(kept)]));
  const transaction = {
    error: null,
    aborted: false,
    abort() {
      this.aborted = true;
      for (const [name, kept] of before) stores.set(name, kept);
      queueMicrotask(() => this.onabort?.());
    },
    objectStore(name) {
      const kept = () => stores.get(name);
      const put = (value, key) => kept().set(key, structuredClone(value));
      return { get: (key) => answered({}, kept().get(key)), getAll: () => answered({}, [...kept().values()]), put, add: put };
    },
  };
  setTimeout(() => transaction.aborted || transaction.oncomplete?.(), 1);
  return transaction;
}

const indexedDB = {
  open(name) {
    const isNew = !databases.has(name);
    const stores = databases.get(name) ?? databases.set(name, new Map()).get(name);
    const request = {
      result: {
        close() {},
        objectStoreNames: { contains: (store) => stores.has(store) },
        createObjectStore: (store) => stores.set(store, new Map()),
        transaction: () => transactionOf(stores),
      },
    };
    queueMicrotask(() => {
      if (isNew) request.onupgradeneeded?.();
      request.onsuccess?.();
    });
    return request;
  },
};

const { count, wrong } = await tryDevices(JSON.parse(readFileSync(process.argv[2], "utf8")), /** @type {any} */ (indexedDB));
for (const each of wrong) console.log(each);
console.log(`${count} vectors, ${wrong.length} wrong`);
