import { type IncomingHttpHeaders, request as plainRequest, type RequestOptions } from 'node:http';
import { request as tlsRequest } from 'node:https';
import { EmulatorError } from './checks.js';

/** A user's decision on the consent page. */
export interface Choice {
  /** Id of the user; the first one by default. */
  readonly user?: string | undefined;
  /** Presses Decline instead of Approve. */
  readonly decline?: boolean | undefined;
}

interface PageResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/**
 * Opens the consent page, chooses a user and presses a button. Both requests go over HTTP, so they are recorded, and faults affect them.
 *
 * @param url - The authorization request that the application redirects to.
 * @param user - Id of the user.
 * @returns The URL that the service then redirects to: the application's callback.
 * @throws {EmulatorError} `ERR_EMULATOR_APPROVAL` if the service shows an error page instead.
 */
export async function approve(url: URL, user: string, decline: boolean): Promise<string> {
  const opened = await send(url, 'GET');
  if (opened.headers.location !== undefined) return opened.headers.location;
  if (opened.status !== 200) throw notApproved(opened);
  const form = new URLSearchParams(url.search);
  form.set('user', user);
  form.set('decision', decline ? 'decline' : 'approve');
  const decided = await send(new URL(url.pathname, url), 'POST', form.toString());
  if (decided.headers.location === undefined) throw notApproved(decided);
  return decided.headers.location;
}

function send(url: URL, method: string, form?: string): Promise<PageResponse> {
  const headers = form === undefined ? {} : { 'content-type': 'application/x-www-form-urlencoded' };
  // The certificate is the test's own, and the request never leaves this computer.
  const options: RequestOptions & { readonly rejectUnauthorized: boolean } = {
    method,
    headers,
    agent: false,
    rejectUnauthorized: false,
  };
  return new Promise((resolve, reject) => {
    const request = url.protocol === 'https:' ? tlsRequest(url, options) : plainRequest(url, options);
    request.on('error', reject);
    request.on('response', (response) => {
      const { statusCode = 0, headers } = response;
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => resolve({ status: statusCode, headers, text: Buffer.concat(chunks).toString() }));
    });
    request.end(form);
  });
}

function notApproved({ status, text }: PageResponse): EmulatorError {
  const reason = /<p>([^<]*)<\/p>/.exec(text)?.[1] ?? 'The response has no reason.';
  return new EmulatorError(
    `The service answered the authorization request with ${status} instead of a redirect. ${reason}`,
    { code: 'ERR_EMULATOR_APPROVAL' },
  );
}
