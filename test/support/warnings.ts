import { onTestFinished } from 'vitest';

/** The process warnings with a code, until the test ends. */
export function warnings(code: string): Error[] {
  const found: Error[] = [];
  const note = (warning: Error & { code?: string }) => void (warning.code === code && found.push(warning));
  process.on('warning', note);
  onTestFinished(() => void process.off('warning', note));
  return found;
}
