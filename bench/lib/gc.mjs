import { GCProfiler } from 'node:v8';

let profiler;
let heapAtStart;

/** Starts to count collections of garbage. */
export function startGc() {
  heapAtStart = process.memoryUsage().heapUsed;
  profiler = new GCProfiler();
  profiler.start();
}

/**
 * Ends it.
 *
 * @returns {{ young: number, full: number, pauseUs: number, youngUs: number, allocatedBytes: number }} `young`, `full`: how many
 *   collections of new objects and of the whole heap; `pauseUs`: how long the program stood still in all of them; `youngUs`: in
 *   the young ones; `allocatedBytes`: by the program meanwhile
 */
export function stopGc() {
  const counted = { young: 0, full: 0, pauseUs: 0, youngUs: 0, allocatedBytes: 0 };
  let usedBefore = heapAtStart;
  for (const { gcType, cost, beforeGC, afterGC } of profiler.stop().statistics) {
    if (gcType === 'Scavenge') {
      counted.young += 1;
      counted.youngUs += cost;
    }
    if (gcType === 'MarkSweepCompact') counted.full += 1;
    counted.pauseUs += cost;
    counted.allocatedBytes += Math.max(0, usedOf(beforeGC) - usedBefore);
    usedBefore = usedOf(afterGC);
  }
  counted.allocatedBytes += Math.max(0, process.memoryUsage().heapUsed - usedBefore);
  return counted;
}

function usedOf({ heapStatistics }) {
  return heapStatistics.usedHeapSize;
}
