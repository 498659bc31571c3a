// What the programs of this folder have in common: they listen where the tests say, and have a page to log in and consent.
import { createServer } from 'node:http';

/** `Place` of ../authorization-server.ts. */
export const place = JSON.parse(process.argv[2]);

/** Listens until SIGUSR2 closes the port and all connections; the next SIGUSR2 listens again. */
export function serve(listener) {
  const server = createServer(listener);
  const listen = () => server.listen(place.port, '127.0.0.1', () => console.log('listening'));
  process.on('SIGUSR2', () => {
    if (!server.listening) return listen();
    server.close(() => console.log('closed'));
    server.closeAllConnections();
  });
  // While it does not listen, nothing else keeps the process alive.
  setInterval(() => {}, 60_000);
  listen();
}

/** The page on which users log in and consent; it sends its form to its own address. */
export const consentPage = `<!doctype html><form method="post">
  <input name="username"> <input name="password" type="password">
  <button name="allowed" value="true">Allow</button> <button name="allowed" value="false">Deny</button>
</form>`;

/** The user whose name and password came from {@link consentPage}. */
export function userOf({ username, password }) {
  const user = place.users.find(({ name }) => name === username);
  return user?.password === password ? { id: user.name } : undefined;
}
