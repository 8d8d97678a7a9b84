"""Money moves between accounts; the total per owner is kept, and read at every commit.

Run it with: python examples/bank.py
"""

import tempfile

import rollview

WEALTH = "CREATE MATERIALIZED VIEW wealth AS SELECT owner, SUM(money) AS money FROM accounts GROUP BY owner"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        rollview.create(f"{folder}/bank").close()
        with rollview.open(f"{folder}/bank") as bank:
            bank.sql(
                "CREATE TABLE accounts (id BIGINT PRIMARY KEY, owner STRING, money DECIMAL(12,2))",
                "INSERT INTO accounts VALUES (1, 'Ada', 100), (2, 'Bob', 50), (3, 'Ada', 0)",
            )
            bank.create_view(WEALTH)
            transfer(bank, 1, 2, 30)
            transfer(bank, 2, 3, 10)
            bank.refresh()
            for csn in (1, 2, 3):
                rows = bank.read("wealth", as_of=csn).orderBy("owner").collect()
                print(f"csn {csn}:", ", ".join(f"{row.owner} {row.money}" for row in rows))


def transfer(bank: rollview.Warehouse, source: int, target: int, amount: int) -> None:
    """Both changes are in one commit, so no reader ever sees the money twice or not at all."""
    with bank.transaction() as tx:
        tx.sql(f"UPDATE accounts SET money = money - {amount} WHERE id = {source}")
        tx.sql(f"UPDATE accounts SET money = money + {amount} WHERE id = {target}")


if __name__ == "__main__":
    main()
