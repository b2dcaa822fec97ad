/** The queue in IndexedDB: events stay until their outcome is known. The next page sends the rest. */

const SIZE = 1000;
const LEFTOVERS = 100;

const request = indexedDB.open("svc-js", 1);
request.onupgradeneeded = () => request.result.createObjectStore("events");
const database = answer(request);
/** The ids of an earlier page's events. */
const left = run("readonly", (events) => events.getAllKeys());

function answer(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

async function run(mode, act) {
  return answer(act((await database).transaction("events", mode).objectStore("events")));
}

/** Stores an event as JSON, while there is room. */
export async function put(id, body) {
  await left;
  const stored = await run("readonly", (events) => events.count());
  if (body && stored < SIZE) await run("readwrite", (events) => events.put(body, id));
}

/** @param {string[]} ids */
export async function remove(ids) {
  await Promise.all(ids.map((id) => run("readwrite", (events) => events.delete(id))));
}

/** Some events of an earlier page, each once, as pairs of id and JSON. */
export async function leftovers() {
  const ids = (await left).splice(0, LEFTOVERS);
  const bodies = await Promise.all(ids.map((id) => run("readonly", (events) => events.get(id))));
  return ids.map((id, index) => [id, bodies[index]]).filter(([, body]) => body);
}
