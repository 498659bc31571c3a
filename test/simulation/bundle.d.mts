/** Installs the packages that the simulation alone needs, once. */
export function installSimulation(): void;
