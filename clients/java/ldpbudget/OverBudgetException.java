package ldpbudget;

/** A limit of the device does not allow a charge; nothing was drawn. */
public final class OverBudgetException extends RuntimeException {
  private static final long serialVersionUID = 1;

  OverBudgetException(String why) {
    super(why);
  }
}
