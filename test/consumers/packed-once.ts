import { pack } from './packed.js';

/** Packs the package once for all files of a run: a setup of Vitest, which hands it on in the environment. */
export default async function packOnce(): Promise<() => Promise<void>> {
  const { tarball, folder, files, remove } = await pack();
  process.env.PACKED = JSON.stringify({ tarball, folder, files });
  return remove;
}
