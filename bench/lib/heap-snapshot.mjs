import { readFileSync } from 'node:fs';

/** Classes that hold things on behalf of another: who has made them tells more. */
const PLAIN = new Set(['Object', 'Array', 'Map', 'Set']);

/**
 * Which object holds how much of a heap: each node counts for the object next to it on the shortest way from the root that is of a
 * class of its own, of which there are few.
 *
 * @param {string} file that `writeHeapSnapshot` has written
 * @param {{ few: number, entryOf?: (holder: string, key: string) => string }} options `few`: instances that a class may have, so that
 *   what there is one of for each user is no holder; `entryOf`: tells entries of one holder apart by their keys
 * @returns {Map<string, { bytes: number, stringBytes: number }>} by holder: class and field, as in `MemoryStore.sessions`
 */
export function heldBy(file, { few, entryOf = (holder) => holder }) {
  const graph = readGraph(file);
  const instances = new Map();
  for (let node = 0; node < graph.count; node += 1) {
    if (graph.typeOf(node) !== 'object') continue;
    instances.set(graph.nameOf(node), (instances.get(graph.nameOf(node)) ?? 0) + 1);
  }
  const isHolder = (node) =>
    graph.typeOf(node) === 'object' &&
    !PLAIN.has(graph.nameOf(node)) &&
    /^[A-Z]\w*$/.test(graph.nameOf(node)) &&
    instances.get(graph.nameOf(node)) <= few;
  const sums = new Map();
  const fields = new Set();
  const holderOf = (node, inherited, parent, edge) => {
    if (fields.has(parent)) return entryOf(inherited, graph.edgeNameOf(edge));
    if (!isHolder(parent)) return inherited;
    fields.add(node);
    return `${graph.nameOf(parent)}.${graph.edgeNameOf(edge)}`;
  };
  walk(graph, (node, ...from) => {
    const holder = holderOf(node, ...from);
    const sum = sums.get(holder) ?? { bytes: 0, stringBytes: 0 };
    sums.set(holder, sum);
    sum.bytes += graph.bytesOf(node);
    if (graph.typeOf(node).includes('string')) sum.stringBytes += graph.bytesOf(node);
    return holder;
  });
  return sums;
}

/** Breadth first, along all edges that keep their target alive. `visit` says what the node hands on to those behind it. */
function walk(graph, visit) {
  const handed = new Map([[0, '']]);
  let next = [0];
  while (next.length > 0) {
    const behind = [];
    for (const node of next) {
      for (const edge of graph.edgesOf(node)) {
        const target = graph.targetOf(edge);
        if (handed.has(target) || graph.edgeTypeOf(edge) === 'weak') continue;
        handed.set(target, visit(target, handed.get(node), node, edge));
        behind.push(target);
      }
    }
    next = behind;
  }
}

/** What a snapshot says, by the number of a node or of an edge. */
function readGraph(file) {
  const { snapshot, nodes, edges, strings } = JSON.parse(readFileSync(file, 'utf8'));
  const {
    node_fields: nodeFields,
    node_types: nodeTypes,
    edge_fields: edgeFields,
    edge_types: edgeTypes,
  } = snapshot.meta;
  const count = nodes.length / nodeFields.length;
  const ofNode = (field) => {
    const place = nodeFields.indexOf(field);
    return (node) => nodes[node * nodeFields.length + place];
  };
  const ofEdge = (field) => {
    const place = edgeFields.indexOf(field);
    return (edge) => edges[edge * edgeFields.length + place];
  };
  const [type, name, bytesOf, edgeCount] = ['type', 'name', 'self_size', 'edge_count'].map(ofNode);
  const [edgeType, edgeName, target] = ['type', 'name_or_index', 'to_node'].map(ofEdge);
  const firstEdge = new Uint32Array(count + 1);
  for (let node = 0; node < count; node += 1) firstEdge[node + 1] = firstEdge[node] + edgeCount(node);
  const edgeTypeOf = (edge) => edgeTypes[0][edgeType(edge)];
  return {
    count,
    bytesOf,
    edgeTypeOf,
    typeOf: (node) => nodeTypes[0][type(node)],
    nameOf: (node) => strings[name(node)],
    edgeNameOf: (edge) => (['element', 'hidden'].includes(edgeTypeOf(edge)) ? '' : strings[edgeName(edge)]),
    targetOf: (edge) => target(edge) / nodeFields.length,
    *edgesOf(node) {
      for (let edge = firstEdge[node]; edge < firstEdge[node + 1]; edge += 1) yield edge;
    },
  };
}
