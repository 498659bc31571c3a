import { startExample } from './example.js';
import { realService, run, SettingsError, serverSettings, untilAskedToEnd } from './server.js';

const usage = `Usage: npm start [-- OPTION]

Runs the example application of passport-oauth-app, with an emulated service inside.

  --tour   needs no browser: walks through login, refresh, enterprise host, decline
           and logout by itself, and checks each step; exits with 0 if all were right
  --help   this text

Environment:
  PORT            the port to listen on (3000, or a free one if that is taken)
  AUTH_URL, BASE_URL, CLIENT_ID, CLIENT_SECRET, CALLBACK_URL, SCOPE, SESSION_SECRET
                  all of them together: use this real service instead
  ENTERPRISE_BASE_URL   its API for organizations, such as https://{domain}.api.example.com
  PKCE=1          it takes a code challenge`;

const print = (text: string) => void process.stdout.write(`${text}\n`);

await run(async () => {
  const args = process.argv.slice(2);
  const unknown = args.find((arg) => arg !== '--tour' && arg !== '--help');
  if (unknown !== undefined) {
    process.stderr.write(`Unknown option: ${unknown}\n${usage}\n`);
    process.exitCode = 2;
    return;
  }
  if (args.includes('--help')) return print(usage);
  const service = realService(process.env);
  if (args.includes('--tour')) {
    if (service)
      throw new SettingsError('The tour walks through the emulated service: unset AUTH_URL and the others for it.');
    // Imported here: only the tour needs an HTTP client.
    const { tour } = await import('./tour.js');
    return tour(print);
  }
  const example = await startExample({ ...serverSettings(process.env), realService: service });
  const { authUrl } = example.service ?? {};
  const isAsked = untilAskedToEnd();
  print(
    `\n  Open ${example.url}\n${authUrl ? `\n  The emulated service listens on ${authUrl}. Ctrl-C ends both.` : ''}`,
  );
  await isAsked;
  await example.close();
});
