import { type Html, html } from '../html.js';

/** All incidents, by the lines of the application that handle them, as they stand in `file`. */
export const incidentGroups = [
  {
    title: 'Nothing to handle',
    text: 'The call waits for a new token, or is made once more with it. The page notices nothing.',
    code: `app.get('/projects', requireAuthorization({ login: '/login' }), async (req, res) => {
  const { data } = await req.apiClient.projects<pages.ProjectList>();
  await pages.send(res, pages.projects(data));`,
    file: 'app.ts',
    incidents: [
      ['burst', '12 calls at once', 'Twelve calls meet a token that the service refuses.'],
      ['refuse', 'Refuse my token', 'The service refuses the token before its time is over.'],
      ['slow', 'Slow token endpoint', 'The next refresh takes three seconds.'],
      [
        'other-process',
        'Another process refreshes first',
        'It uses up the refresh token. This one takes over the new pair.',
      ],
      ['unsaved', 'Token store takes no writes', 'For ten seconds. The new pair is used from memory, and saved later.'],
    ],
  },
  {
    title: 'Say that it will pass',
    text: 'Calls fail at once with an error that has a status. Nobody is logged out.',
    code: `if (error instanceof ServiceUnavailableError || error instanceof ApiError) {
  if (error.retryAfter) res.set('Retry-After', String(Math.ceil(error.retryAfter)));
}`,
    file: 'errors.ts',
    incidents: [
      ['outage', 'Service down for 30 s', 'The token is refused, and the token endpoint answers 503 to everybody.'],
      ['store-down', 'Token store down', 'The store neither reads nor writes for 15 seconds.'],
      ['bad-secret', 'Wrong client secret', 'The service refuses the application for 15 seconds.'],
      ['mend', 'Mend everything', 'Ends what is still broken. Calls may fail fast for two more seconds.'],
    ],
  },
  {
    title: 'Ask for the permission again',
    text: 'The grant has ended at the service. The user is sent to log in, once, and never in a loop.',
    code: `if (error instanceof NotAuthorizedError) {
  return ['Your permission has ended', 'Log in to go on.', login];
}`,
    file: 'errors.ts',
    incidents: [
      ['revoke', 'Revoke at the service', 'The service ends the permission.'],
      ['lost-answer', 'Lose the next answer', 'The service rotates the refresh token. Nobody gets the new pair.'],
    ],
  },
  {
    title: 'Log out',
    text: 'A refresh that ends after the logout brings nothing back.',
    code: `app.post('/logout', logout(strategy), (_req, res) => {
  res.redirect(303, '/');
});`,
    file: 'app.ts',
    incidents: [['log-out', 'Log out during a refresh', 'The refresh takes three seconds. You log out meanwhile.']],
  },
] as const;

/** The buttons that break something, each group beside the lines of code that handle it. */
export const incidentsView: Html = html`<section aria-labelledby="incidents-title">
<h2 id="incidents-title">Break something</h2>
<p class="soft">Each button causes the incident and then makes one API call as any page would.</p>
${incidentGroups.map(
  ({ title, text, code, file, incidents }) => html`<section class="card">
<h3>${title}</h3>
<p class="soft">${text}</p>
<pre><code>${code}</code></pre>
<p class="soft">example-app/src/${file}</p>
<ul class="incidents">${incidents.map(
    ([name, title, text]) =>
      html`<li><form method="post" action="/incidents/${name}"><button class="small" aria-describedby="about-${name}">${title}</button></form><p class="soft" id="about-${name}">${text}</p></li>`,
  )}</ul>
</section>
`,
)}
</section>`;
