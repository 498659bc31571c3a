#!/usr/bin/env node
import { run } from './command.js';

// A reader such as `head` may close the pipe early; that is no failure.
process.stdout.on('error', () => {});

process.exitCode = await run(process.argv.slice(2), {
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
  untilEnd: () =>
    new Promise((resolve) => {
      process.once('SIGINT', () => resolve());
      process.once('SIGTERM', () => resolve());
    }),
});
