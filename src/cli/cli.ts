#!/usr/bin/env node
const usage = `Usage: passport-oauth-app COMMAND [options]

Commands:
  init       writes a small application, its .env for the emulator, and a test
  emulator   runs an emulator of the OAuth service on this computer
  doctor     checks the settings of a real service, without a login

See passport-oauth-app COMMAND --help.
`;

// A reader such as `head` may close the pipe early; that is not an error.
process.stdout.on('error', () => {});

process.exitCode = await run(process.argv.slice(2));

async function run([command, ...args]: readonly string[]): Promise<number> {
  if (command === 'init') return (await import('./init.js')).init(args);
  if (command === 'doctor') return await (await import('./doctor.js')).doctor(args);
  if (command === undefined || command === '--help' || command === '-h') {
    process.stdout.write(usage);
    return 0;
  }
  return await (await import('../emulator/emulator-command.js')).emulatorCommand([command, ...args]);
}
