/** Card numbers nobody owns: the test range 424242, unique within a run, valid by Luhn. */

const range = '424242';
const serialDigits = 9;

/** The number with the given serial, which wraps round after 10^9. */
export function cardNumber(serial: number): string {
  const body = range + String(serial % 10 ** serialDigits).padStart(serialDigits, '0');
  return body + luhnDigit(body);
}

export function cardBody(serial: number): string {
  const data = {
    number: cardNumber(serial),
    expiration_month: 12,
    expiration_year: 2030,
    cvc: '123',
  };
  return JSON.stringify({ type: 'card', data });
}

function luhnDigit(body: string): number {
  let sum = 0;
  for (let place = 0; place < body.length; place += 1) {
    const digit = Number(body[body.length - 1 - place]);
    const doubled = place % 2 === 0 ? digit * 2 : digit;
    sum += doubled > 9 ? doubled - 9 : doubled;
  }
  return (10 - (sum % 10)) % 10;
}
