import type { ApiClient } from 'passport-oauth-app';

/** Calls `connect` with the user's token, and again with a new one if the service rejected the first. */
export async function withToken<T>(
  client: ApiClient,
  connect: (token: string) => Promise<T>,
  isRefusal: (error: unknown) => boolean,
): Promise<T> {
  const token = await client.accessToken();
  try {
    return await connect(token);
  } catch (error) {
    if (!isRefusal(error)) throw error;
    return await connect(await client.accessToken({ refused: token }));
  }
}
