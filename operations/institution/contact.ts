import { orNull } from '../../event/answer-fields.ts'
import { Type } from '../../event/type.ts'
import { email } from '../arguments.ts'
import { anEmail } from '../examples.ts'
import { contact, contactStates, institutionOperations } from '../institutions.ts'
import { alters, ends, type OwnOperation, shows } from './row.ts'

const ofOperators = institutionOperations['institutions.contact']
const removeOfOperators = institutionOperations['institutions.remove-contact']
const { email: address, state, setAt } = contact.properties

export const ownContact = {
  'contact.show': shows('the address to which the institution is mailed about silence, loops and refusals', {
    permission: 'publish',
    at: 'GET /institution/contact',
    console: {
      view: 'own-contact',
      title: 'Contact',
      columns: [['E-mail', 'email'], 'state', ['Set', 'setAt']],
    },
    result: Type.Object(
      { email: orNull(address), state: orNull(state), setAt: orNull(setAt) },
      { description: 'null: the institution has no contact' },
    ),
    run: ({ contact }) => contact.get() ?? { email: null, state: null, setAt: null },
  }),
  'contact.set': alters('set that address, in place of a former one; it is confirmed by a link', {
    permission: 'publish',
    at: 'POST /institution/contact',
    args: { email },
    example: { email: anEmail },
    console: {
      ...ofOperators.console,
      view: 'own-contact',
      title: 'Set a contact',
      notice: ['It takes the place of a former contact at once, which gets no more mails.'],
    },
    result: ofOperators.result,
    run: ({ contact }, { email }, change) => contact.set(email, change),
  }),
  'contact.remove': ends('mail nothing more to that address, and forget it', {
    permission: 'publish',
    at: 'POST /institution/contact/remove',
    console: {
      view: 'own-contact',
      title: 'Remove',
      of: 'institution.contact.show',
      where: { state: contactStates },
      loss: ['{email} gets no more mails, and is forgotten.'],
    },
    result: removeOfOperators.result,
    run: ({ contact }, _none, change) => contact.remove(change),
  }),
} satisfies Record<string, OwnOperation>
