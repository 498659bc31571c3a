import { decodings } from '../api/call-request.js';
import { optionError } from '../checks.js';

/** One entry of the option `allow`, such as `GET /projects/*`. */
interface Rule {
  /** In upper case; `*` for all. */
  readonly method: string;
  readonly path: RegExp;
}

/** Matches the requests that `forward` passes on. */
export class AllowList {
  readonly #rules: readonly Rule[];

  private constructor(rules: readonly Rule[]) {
    this.#rules = rules;
  }

  /**
   * Reads the option `allow`: a method or `*`, a space, and a path below the API path. `*` in it matches one segment, and
   * `/**` at its end the path before it and everything below.
   *
   * @throws ConfigurationError for anything else, and for an empty list
   */
  static read(option: string, value: unknown): AllowList {
    if (Array.isArray(value) && value.length > 0) return new AllowList(value.map((entry) => ruleOf(option, entry)));
    throw optionError(option, "expected a list of requests, such as ['GET /projects', '* /projects/*/files/**']");
  }

  /**
   * Returns true if a rule names the request, however often the service decodes its path, and whether or not it drops
   * parameters of segments (`;name=value`, RFC 3986, 3.3).
   *
   * @param path As {@link apiPath} returns it
   */
  names(method: string, path: string): boolean {
    const rules = this.#rules.filter((rule) => rule.method === '*' || rule.method === method);
    const isNamed = (text: string) => rules.some((rule) => rule.path.test(text));
    return decodings(path).every((text) => isNamed(text) && isNamed(text.replace(/;[^/]*/g, '')));
  }
}

function ruleOf(option: string, entry: unknown): Rule {
  const [, method = '', path] = /^(\*|[A-Z]{1,32}) (\/.*)$/.exec(typeof entry === 'string' ? entry : '') ?? [];
  const segments = path === undefined ? [] : path.slice(1).split('/');
  const isBelow = segments.at(-1) === '**';
  const named = isBelow ? segments.slice(0, -1) : segments;
  const isPath = path === '/' || named.every((segment) => /^(?:\*|(?!\.\.?$)[\w.~!$&'()+,=:@-]+)$/.test(segment));
  if (path === undefined || !isPath) {
    throw optionError(
      option,
      "expected entries such as 'GET /projects/*': a method in upper case or *, a space, and a path. * in the path stands for one segment, ** at its end for all below",
    );
  }
  const pattern = named.map((segment) => `/${segment === '*' ? '[^/]+' : segment.replace(/[.$()+]/g, '\\$&')}`);
  return { method, path: new RegExp(`^${pattern.join('')}${isBelow ? '(?:/.*)?' : ''}$`, 's') };
}
