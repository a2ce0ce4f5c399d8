//! The transaction that a COPY is part of: its own, or a block's, to which it is given back.

use crate::write::{Loan, Transaction};
use crate::{Error, Progress};

/// A transaction for as long as a COPY needs it.
#[derive(Debug)]
pub(crate) struct Used {
    transaction: Option<Transaction>,
    end: End,
}

#[derive(Debug)]
enum End {
    Commit(Progress),
    GiveBack(Loan),
}

impl Used {
    /// A transaction of the COPY alone, which commits with it.
    pub(crate) fn own(transaction: Transaction, progress: &Progress) -> Self {
        Self { transaction: Some(transaction), end: End::Commit(progress.clone()) }
    }

    /// A block's, left at `loan` however the COPY ends.
    pub(crate) fn lent(transaction: Transaction, loan: &Loan) -> Self {
        Self { transaction: Some(transaction), end: End::GiveBack(loan.clone()) }
    }

    /// Whether it goes on after the COPY.
    pub(super) fn is_lent(&self) -> bool {
        matches!(self.end, End::GiveBack(_))
    }

    pub(super) fn transaction(&mut self) -> Result<&mut Transaction, Error> {
        self.transaction.as_mut().ok_or_else(|| Error::internal("a COPY has ended already"))
    }

    /// The COPY is complete.
    pub(super) async fn finish(&mut self) -> Result<(), Error> {
        if let End::Commit(progress) = &self.end
            && let Some(transaction) = self.transaction.take()
        {
            transaction.commit(progress).await?;
        }
        Ok(())
    }
}

impl Drop for Used {
    fn drop(&mut self) {
        if let End::GiveBack(loan) = &self.end
            && let Some(transaction) = self.transaction.take()
        {
            loan.put(transaction);
        }
    }
}
