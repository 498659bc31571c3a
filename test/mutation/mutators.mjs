// A plugin of Stryker: mutators that it lacks. A `finally` is emptied by its own mutator of blocks.
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const { resolve } = createRequire(import.meta.url);
const instrumenter = createRequire(resolve('@stryker-mutator/core')).resolve('@stryker-mutator/instrumenter');
const { default: babel } = await import(pathToFileURL(createRequire(instrumenter).resolve('@babel/core')).href);
const { allMutators } = await import(pathToFileURL(join(instrumenter, '../mutators/index.js')).href);

allMutators.push(
  {
    name: 'StatementRemoval',
    *mutate(path) {
      // Without `super()` a constructor throws: that shows nothing.
      const isCallOfSuper = babel.types.isSuper(path.node.expression?.callee);
      if (path.isExpressionStatement() && !isCallOfSuper) yield babel.types.emptyStatement();
    },
  },
  {
    name: 'AwaitRemoval',
    *mutate(path) {
      if (path.isAwaitExpression()) yield babel.types.cloneNode(path.node.argument);
    },
  },
);

export const strykerPlugins = [];
