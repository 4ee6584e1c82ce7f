// Validate objects of the Prometheus operator with the models that were generated from its Go types.
// node operator_models.mjs FOLDER < objects.json: FOLDER holds node_modules; prints each error on a line.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const entry = "node_modules/@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/index.js";
const models = await import(new URL(entry, pathToFileURL(`${process.argv[2]}/`)));
for (const object of JSON.parse(readFileSync(0, "utf8"))) {
  try {
    new models[object.kind](object).validate();
  } catch (error) {
    console.log(`${object.kind} ${object.metadata.name}: ${error.message}`);
  }
}
