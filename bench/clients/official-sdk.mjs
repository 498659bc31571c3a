import { createRequire } from 'node:module';
import { TOKEN } from './common.mjs';

const { ProjectsGroups } = createRequire(import.meta.url)('@crowdin/crowdin-api-client');

/** The SDK that the vendor of such a service publishes. */
export function createClient({ baseUrl }) {
  const api = new ProjectsGroups({ token: TOKEN, baseUrl: `${baseUrl}/api/v2` });
  return () => api.listProjects();
}
