import { type Html, html } from '../html.js';

/** All incidents, by the lines of the application that handle them, as they stand in `file`. */
export const incidentGroups = [
  {
    title: 'Nothing to handle',
    text: 'The call waits for a new token, or is repeated with it. The page does not notice.',
    code: `app.get('/projects', requireAuthorization({ login: '/login' }), async (req, res) => {
  const { data } = await req.apiClient.projects<pages.ProjectList>();
  await pages.send(res, pages.projects(data));`,
    file: 'app.ts',
    incidents: [
      ['burst', '12 calls at once', 'Twelve calls arrive with a rejected token, and share one refresh.'],
      ['refuse', 'Reject my token', 'The service rejects the token before it expires.'],
      ['slow', 'Slow token endpoint', 'The next refresh takes three seconds.'],
      [
        'other-process',
        'Another process refreshes first',
        'It uses the refresh token. This process picks up the new tokens.',
      ],
      ['unsaved', 'Token store is read-only', 'For ten seconds. New tokens are used from memory, and saved later.'],
    ],
  },
  {
    title: 'Show a retry message',
    text: 'Calls fail fast with an error that has a status. All users stay logged in.',
    code: `if (error instanceof ServiceUnavailableError || error instanceof ApiError) {
  if (error.retryAfter) res.set('Retry-After', String(Math.ceil(error.retryAfter)));
}`,
    file: 'errors.ts',
    incidents: [
      [
        'outage',
        'Service down for 30 s',
        'The token is rejected, and the token endpoint responds with 503 to all users.',
      ],
      ['store-down', 'Token store down', 'All reads and writes fail for 15 seconds.'],
      ['bad-secret', 'Wrong client secret', 'The service rejects the application for 15 seconds.'],
      ['mend', 'Fix everything', 'Ends all incidents. Calls may fail fast for two more seconds.'],
    ],
  },
  {
    title: 'Log in again',
    text: 'The service ended the grant. The user is sent to the login once, never in a loop.',
    code: `if (error instanceof NotAuthorizedError) {
  return ['Your access has expired', 'Log in to continue.', login];
}`,
    file: 'errors.ts',
    incidents: [
      ['revoke', 'Revoke at the service', 'The service ends your access. You have to log in again.'],
      [
        'lost-answer',
        'Lose the next answer',
        'The service rotates the refresh token, and the response is lost. You have to log in again.',
      ],
    ],
  },
  {
    title: 'Log out',
    text: 'A refresh that finishes after the logout brings nothing back.',
    code: `app.post('/logout', logout(strategy), (_req, res) => {
  res.redirect(303, '/');
});`,
    file: 'app.ts',
    incidents: [
      ['log-out', 'Log out during a refresh', 'The refresh takes three seconds, and you log out before it finishes.'],
    ],
  },
] as const;

/** The buttons that break something, each group beside the lines of code that handle it. */
export const incidentsView: Html = html`<section aria-labelledby="incidents-title">
<h2 id="incidents-title">Break something</h2>
<p class="soft">Each button causes the incident, then makes one API call as any page would.</p>
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
