import { expect, it } from 'vitest'
import { clock, hours, week } from './windows'

it('no window is always open', () => expect(hours(week([]))).toBe(168))

it('a window over midnight goes on the next day, Sunday into Monday', () => {
  const days = week([{ start: '22:00', end: '06:00', days: ['Sunday'] }])
  expect(days[6]).toEqual([{ from: 1320, to: 1440 }])
  expect(days[0]).toEqual([{ from: 0, to: 360 }])
  expect(hours(days)).toBe(8)
})

it('windows that touch are one, unreadable ones are none', () => {
  const days = week([{ start: '08:00', end: '12:00', days: ['mon'] }, { start: '12:00', end: '13:30', days: ['Monday'] }, { start: 'noon', end: '25:99' }])
  expect(days[0]).toEqual([{ from: 480, to: 810 }])
  expect(days[1]).toEqual([])
})

it('minutes read as a clock', () => expect([0, 65, 1440].map(clock)).toEqual(['00:00', '01:05', '24:00']))
