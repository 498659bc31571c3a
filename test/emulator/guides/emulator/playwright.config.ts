import { defineConfig } from '@playwright/test';

export default defineConfig({
  testMatch: '*.spec.ts',
  use: { launchOptions: { executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] } },
});
