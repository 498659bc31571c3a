/**
 * What a strategy of ours has to be told of the service, the same for all that are measured.
 *
 * @param {{ url: string, clientID: string, clientSecret: string }} service
 * @param {string} [origin] of the application; a client that nobody logs in through has none
 */
export function strategyOptions({ url, clientID, clientSecret }, origin = 'http://127.0.0.1') {
  return { authUrl: url, baseUrl: url, clientID, clientSecret, callbackURL: `${origin}/callback`, scope: 'project' };
}
