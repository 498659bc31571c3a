// Starts the emulated service, and the application with its address and credentials: `node example-app/minimal/with-emulator.js`.
import { startEmulator } from 'passport-oauth-app/emulator';

const port = process.env.PORT ?? '3000';
const service = await startEmulator({ applications: [{ redirectUrls: [`http://localhost:${port}/callback`] }] });
process.env.AUTH_URL = service.authUrl;
process.env.BASE_URL = service.baseUrl;
process.env.CLIENT_ID = service.options.clientID;
process.env.CLIENT_SECRET = service.options.clientSecret;
process.env.SESSION_SECRET = 'for development only';
process.once('SIGTERM', () => service.close());
await import('./server.js');
