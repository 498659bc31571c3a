import { startExample } from '../example.js';
import { serverSettings } from '../settings.js';
import { Guide } from './guide.js';
import { Report, TourError } from './report.js';
import * as steps from './steps.js';
import { Visitor } from './visitor.js';

/** Seconds. The tour moves the clock instead of waiting. */
const tokenLifetime = 7200;

/**
 * Walks through everything that the application does, over real HTTP, and checks what the service received.
 *
 * @param print Takes one line.
 * @returns Whether each step did what it should.
 */
export async function tour(print: (line: string) => void): Promise<boolean> {
  let movedMs = 0;
  const expire = () => {
    movedMs += (tokenLifetime + 1) * 1000;
  };
  const clock = () => Date.now() + movedMs;
  const example = await startExample({ ...serverSettings({}), port: 0, tokenLifetime, clock });
  const report = new Report(print);
  try {
    await walk(new Guide(example, report, expire));
    print(`\nAll ${report.steps} steps did what they should.`);
    return true;
  } catch (error) {
    if (!(error instanceof TourError)) throw error;
    print(`    ${error.message}`);
    return false;
  } finally {
    await example.close();
  }
}

async function walk(guide: Guide): Promise<void> {
  const ada = new Visitor();
  await steps.logIn(guide, ada);
  await steps.refresh(guide, ada);
  await steps.refuseToken(guide, ada);
  await steps.manyAtOnce(guide, ada);
  await steps.enterprise(guide, new Visitor());
  await steps.decline(guide, new Visitor());
  await steps.forge(guide, new Visitor());
  await steps.unregistered(guide, new Visitor());
  await steps.logOut(guide, ada);
}
