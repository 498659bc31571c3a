import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Extractor, ExtractorConfig, ExtractorLogLevel } from '@microsoft/api-extractor';
import { afterAll, beforeAll, expect, test } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { type Packed, pack, repository } from '../consumers/packed.js';

const { './package.json': _manifest, ...entryPoints } = manifest.exports;
const reports = mkdtempSync(join(tmpdir(), 'passport-oauth-app-api-'));
let packed: Packed;
beforeAll(async () => {
  packed = await pack();
});
afterAll(() => {
  rmSync(reports, { recursive: true, force: true });
  return packed?.remove();
});

/** Returns the report of API Extractor on the declarations of one entry point, as they are published. */
function reportOf(name: string, types: string): string {
  const config = ExtractorConfig.prepare({
    configObject: {
      projectFolder: packed.folder,
      mainEntryPointFilePath: join(packed.folder, types),
      compiler: {
        overrideTsconfig: {
          compilerOptions: {
            module: 'nodenext',
            target: 'es2023',
            lib: ['es2023', 'dom'],
            strict: true,
            types: ['node'],
            typeRoots: [join(repository, 'node_modules/@types')],
            skipLibCheck: true,
          },
          // The main entry point declares the global types that others name.
          files: [types, manifest.types].map((file) => join(packed.folder, file)),
        },
      },
      apiReport: { enabled: true, reportFileName: `${name}.api.md`, reportFolder: reports, reportTempFolder: reports },
      docModel: { enabled: false },
      dtsRollup: { enabled: false },
      tsdocMetadata: { enabled: false },
      messages: {
        compilerMessageReporting: { default: { logLevel: ExtractorLogLevel.None } },
        extractorMessageReporting: {
          default: { logLevel: ExtractorLogLevel.None },
          'ae-forgotten-export': { logLevel: ExtractorLogLevel.Warning, addToApiReportFile: true },
        },
        tsdocMessageReporting: { default: { logLevel: ExtractorLogLevel.None } },
      },
    },
    configObjectFullPath: undefined,
    packageJsonFullPath: join(packed.folder, 'package.json'),
  });
  Extractor.invoke(config, { localBuild: true, messageCallback: (message) => (message.handled = true) });
  return readFileSync(join(reports, `${name}.api.md`), 'utf8');
}

test.for(Object.entries(entryPoints))(
  'the API of the entry point %s changes only with its report in test/package/api (npm run package-check -- --update)',
  async ([entryPoint, { types }]) => {
    const name = entryPoint === '.' ? 'index' : entryPoint.slice(2).replaceAll('/', '-');
    await expect(reportOf(name, types)).toMatchFileSnapshot(`api/${name}.api.md`);
  },
);
