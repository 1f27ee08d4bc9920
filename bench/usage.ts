import { answer } from './answer.ts'

/* Loaded before a program that knows nothing of the bench, so that it can be asked what it uses. */
answer({})
process.channel?.unref()
