// Your survey. The digest is that of the agreed definition: a page with another definition draws nothing.
export const CONFIG = {
  service: "http://127.0.0.1:8000",
  collection: "commute",
  digest: "81a0ac16f8dc548410000faf7078a30fdcdbdd1866bda97c09bf50846298a5c9",
  limits: { lifetime: "4", day: "1" },
};
