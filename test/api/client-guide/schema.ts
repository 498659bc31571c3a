import type { ApiClient } from 'passport-oauth-app';
import { z } from 'zod';

const Project = z.object({ data: z.object({ id: z.number(), createdAt: z.coerce.date() }) });

export async function createdAt(client: ApiClient, id: number): Promise<Date> {
  const { data } = await client.get(`/projects/${id}`, { schema: Project });
  return data.createdAt;
}
