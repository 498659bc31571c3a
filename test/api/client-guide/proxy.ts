import { Strategy } from 'passport-oauth-app';
import { crowdin } from 'passport-oauth-app/providers';
import { ProxyAgent } from 'undici';

export function behindProxy(clientID: string, clientSecret: string): Strategy {
  return new Strategy({
    ...crowdin,
    clientID,
    clientSecret,
    callbackURL: 'https://app.example.net/callback',
    scope: 'project',
    dispatcher: new ProxyAgent('http://proxy.example.net:3128'),
  });
}
