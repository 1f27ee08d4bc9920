import { answer } from '../answer.ts'
import type { Attack, Force, Seen, Target } from './attack.ts'
import { type AttackName, attacks, type Plan } from './attacks.ts'

/* A process with an attacker. */

let prepared: { attack: Attack; target: Target } | undefined

export const commands = {
  /** Runs the preparation of the attack, if it has one, before the measurement. */
  async prepare({ name, target }: { name: AttackName; target: Target }): Promise<void> {
    const { attack }: Plan = attacks[name]
    prepared = { attack: 'prepare' in attack ? await attack.prepare(target) : attack, target }
  },

  async attack(force: Force): Promise<Seen> {
    if (!prepared) throw new Error('nothing is prepared')
    return prepared.attack(prepared.target, force)
  },
}

answer(commands)
