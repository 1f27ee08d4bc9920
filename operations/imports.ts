import { boolean, integer, string } from '../event/answer-fields.ts'
import { Type } from '../event/type.ts'
import { listOf } from './arguments.ts'
import { changes, type Of } from './operation.ts'

const part = Type.Object({
  found: integer,
  cameOver: integer,
  leftOut: Type.Array(
    Type.Object({
      reason: string,
      count: integer,
      examples: Type.Array(Type.Object({ of: string, why: string })),
    }),
  ),
})

const report = Type.Object({
  source: string,
  dryRun: boolean,
  retained: part,
  sessions: part,
  filters: part,
  queued: part,
})

export type ImportReport = Of<typeof report>

export const importOperations = {
  'import.aedes-redis': changes(
    'bring over what an Aedes broker keeps in Redis: retained events, sessions, control states that wait for them',
    {
      args: {
        url: Type.String({
          description: 'the URL of a Redis with data of Aedes, such as redis://user:password@host:6379/0',
        }),
        users: Type.Optional(
          listOf(
            'lines of a client id, a comma and a user name; a client id may end in *',
            Type.String({ maxLength: 65_535 }),
          ),
        ),
        dryRun: Type.Optional(Type.Boolean({ description: 'true to change nothing, or false' })),
        progress: Type.Optional(
          Type.Boolean({ description: 'false to get nothing but the report, or true' }),
        ),
      },
      example: { url: 'redis://10.0.0.7:6379/0', dryRun: true },
      singleAnswerArgs: { progress: false },
      console: {
        view: 'node',
        title: 'Import from an Aedes broker',
        patienceSeconds: 600,
        fields: {
          url: { label: 'URL of its Redis' },
          users: { label: 'Whose sessions: client id, user name' },
          dryRun: { label: 'Change nothing, only report', hint: '', usual: 'yes' },
        },
        answer: { title: 'What came over' },
      },
      hubctl: {
        typed: {
          url: [
            '--aedes-redis <url>',
            'from an Aedes broker with aedes-persistence-redis: the URL of its Redis, or - to read it from the input',
          ],
          users: ['--users <file>', 'whose its sessions are: a line "client id,user name" for each'],
          dryRun: ['--dry-run', 'change nothing, and print the same report'],
        },
      },
      result: report,
      run: ({ importFromAedes }, args, { who }) => importFromAedes(args, who),
    },
  ),
}
