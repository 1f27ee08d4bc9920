import type { Test } from 'tap'

/*
 * Stands in for `async-hook-domain` where tests are bundled: whose error is it that was not caught? That package follows
 * every promise to know, which took a third of the processor time of a node in the process of its test. Tests of a file
 * run one after the other here, so the error is of the one that runs.
 */

/** What tap makes for each test. That there is one is enough. */
export class Domain {
  destroy(): void {}
}

// A rejection without a handler arrives here as well.
process.setUncaughtExceptionCaptureCallback((error) => void fail(error))

async function fail(error: Error): Promise<void> {
  // By now: tap loads this module before it is loaded itself.
  const { default: tests } = await import('tap')
  if (tests.results) {
    process.stderr.write(`after the end of the tests: ${error?.stack ?? error}\n`)
    process.exit(1)
  }
  innermost(tests).threw(Object(error))
}

type Running = Pick<Test, 'threw'> & Partial<Pick<Test, 'activeSubtests'>>

/** The test that runs. */
function innermost(test: Running): Running {
  const [running] = test.activeSubtests ?? []
  return running ? innermost(running) : test
}
