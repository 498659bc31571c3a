/** Installs the packages that the simulation alone needs, once. */
export function installSimulation(): void;

/** Bundles the package and the simulation into a folder. */
export function bundleSimulation(): Promise<{ readonly directory: string }>;
