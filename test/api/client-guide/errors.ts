import { type ApiClient, ApiError, NotAuthorizedError, ServiceUnavailableError } from 'passport-oauth-app';

export async function nameOf(client: ApiClient, id: number): Promise<string> {
  try {
    const { data } = await client.get<{ data: { name: string } }>(`/projects/${id}`);
    return data.name;
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return 'unknown';
    if (error instanceof NotAuthorizedError) return 'log in first';
    if (error instanceof ServiceUnavailableError) return `try again in ${error.retryAfter ?? 'some'} seconds`;
    throw error;
  }
}
