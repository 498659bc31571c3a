/** A button that breaks something. */
export interface Incident {
  readonly name: IncidentName;
  readonly title: string;
  readonly text: string;
}

/** The names of the incidents, as they stand in `POST /incidents/{name}`. */
export type IncidentName =
  | 'burst'
  | 'refuse'
  | 'slow'
  | 'other-process'
  | 'unsaved'
  | 'outage'
  | 'store-down'
  | 'bad-secret'
  | 'mend'
  | 'revoke'
  | 'lost-answer'
  | 'log-out';

/** Incidents that the same lines of the application handle. */
export interface IncidentGroup {
  readonly title: string;
  readonly text: string;
  /** Lines of this application, as they stand in `file`. */
  readonly code: string;
  readonly file: string;
  readonly incidents: readonly Incident[];
}

/** All incidents, by the code that handles them. */
export const incidentGroups: readonly IncidentGroup[] = [
  {
    title: 'Nothing to handle',
    text: 'The call waits for a new token, or is made once more with it. The page notices nothing.',
    code: `app.get('/projects', requireAuthorization({ login: '/login' }), async (req, res) => {
  const projects = await req.apiClient.projects<ProjectList>();
  res.send(await projectsPage(req, res, projects));`,
    file: 'app.ts',
    incidents: [
      { name: 'burst', title: '12 calls at once', text: 'Twelve calls meet a token that the service refuses.' },
      { name: 'refuse', title: 'Refuse my token', text: 'The service refuses the token before its time is over.' },
      { name: 'slow', title: 'Slow token endpoint', text: 'The next refresh takes three seconds.' },
      {
        name: 'other-process',
        title: 'Another process refreshes first',
        text: 'A second process uses up the refresh token. This one takes over the new pair.',
      },
      {
        name: 'unsaved',
        title: 'Token store takes no writes',
        text: 'The new pair cannot be saved for ten seconds. It is used from memory and saved later.',
      },
    ],
  },
  {
    title: 'Say that it will pass',
    text: 'Calls fail at once with an error that has a status. Nobody is logged out.',
    code: `if (error instanceof ServiceUnavailableError || error instanceof ApiError) {
  if (error.retryAfter) res.set('Retry-After', String(Math.ceil(error.retryAfter)));
}`,
    file: 'pages/error.ts',
    incidents: [
      {
        name: 'outage',
        title: 'Service down for 30 s',
        text: 'The token is refused, and the token endpoint answers 503 to everyone who wants a new one.',
      },
      { name: 'store-down', title: 'Token store down', text: 'The store neither reads nor writes for 15 seconds.' },
      { name: 'bad-secret', title: 'Wrong client secret', text: 'The service refuses the application for 15 seconds.' },
      {
        name: 'mend',
        title: 'Mend everything',
        text: 'Ends what is still broken. Calls may fail fast for two more seconds.',
      },
    ],
  },
  {
    title: 'Ask for the permission again',
    text: 'The grant has ended at the service. The user is sent to log in, once, and never in a loop.',
    code: `if (error instanceof NotAuthorizedError) {
  return { title: 'Your permission has ended', text: 'Log in to go on.', way: login };
}`,
    file: 'pages/error.ts',
    incidents: [
      { name: 'revoke', title: 'Revoke at the service', text: 'The service ends the permission.' },
      {
        name: 'lost-answer',
        title: 'Lose the next answer',
        text: 'The service rotates the refresh token, and its answer never arrives. Nobody has the new pair.',
      },
    ],
  },
  {
    title: 'Log out',
    text: 'A refresh that ends after the logout brings nothing back.',
    code: `app.post('/logout', logout(strategy), (_req, res) => {
  res.redirect(303, '/');
});`,
    file: 'app.ts',
    incidents: [
      {
        name: 'log-out',
        title: 'Log out during a refresh',
        text: 'The refresh takes three seconds. You log out meanwhile.',
      },
    ],
  },
];

/** Returns the incident of this name, if there is one. */
export function findIncident(name: unknown): Incident | undefined {
  return incidentGroups.flatMap(({ incidents }) => incidents).find((incident) => incident.name === name);
}
