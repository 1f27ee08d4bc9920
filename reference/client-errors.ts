import { errorCodes } from '../client/errors.ts'
import { pushRefusals } from '../client/verify-push.ts'
import { code, type ReferencePage, table } from './page.ts'

/** The codes of errors of the client libraries. */
export function clientErrorsPage(): ReferencePage {
  const codes = Object.entries(errorCodes).map(([name, sentence]) => [code(name), sentence])
  const refusals = Object.entries(pushRefusals).map(([name, { status, meaning }]) => {
    return [code(name), String(status), meaning]
  })
  return {
    name: 'client-errors',
    title: 'Errors of the client libraries',
    about: 'The codes of `ClientError` and `PushRefused`, in JavaScript and Python.',
    text: `Codes are stable, messages are not.

## ClientError

What is no decision of the hub about an event: [JavaScript](clients/javascript.md#codes), [Python](clients/python.md#errors).

${table(['`code`', 'what it means'], codes)}

## PushRefused

Why a webhook is not what it claims to be, and [the status to answer with](webhooks.md#verify-the-token).

${table(['`code`', 'status', 'what it means'], refusals)}`,
  }
}
