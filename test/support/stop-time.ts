import { onTestFinished, vi } from 'vitest';

/** From now on time limits pass as the test lets them, until it ends. Sockets and promises keep their own pace. */
export function stopTime(): void {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  onTestFinished(() => void vi.useRealTimers());
}
